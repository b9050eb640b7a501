"""The pages: executed notebooks through nbconvert, wrapped, with every file that they link."""
