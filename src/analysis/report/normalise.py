"""An executed notebook without what changes from run to run: the same bytes every time."""

from typing import Any

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
INJECTED = "injected-parameters"


def normalise(notebook: dict[str, Any]) -> dict[str, Any]:
    """Fix kernel and ids, drop timings, paths and foreign metadata; keep outputs and counts."""
    for cell in notebook["cells"]:
        tags = cell.get("metadata", {}).get("tags", [])
        if INJECTED in tags:
            cell["id"] = INJECTED
        cell["metadata"] = {"tags": sorted(tags)} if tags else {}
        for output in cell.get("outputs", []):
            if "metadata" in output:
                output["metadata"] = {}
    notebook["metadata"] = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return notebook


def faults(notebook: dict[str, Any]) -> list[str]:
    """Why an executed notebook is not a good one: cells that failed or never ran."""
    found = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        for output in cell["outputs"]:
            if output["output_type"] == "error":
                found.append(f"cell {cell['id']}: {output['ename']}: {output['evalue']}")
        if cell["execution_count"] is None:
            found.append(f"cell {cell['id']} did not run")
    return found
