"""The modules in one script: what is put where, and what is refused before a browser sees it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from orderproof.errors import UsageError
from orderproof.explain.js_bundle import bundle_modules, exported_names
from orderproof.explain.page import STATIC

MODULES = {file.stem: file.read_text(encoding="utf-8") for file in STATIC.glob("*.js")}


def test_what_is_imported_comes_first_and_names_do_not_meet():
    modules = {
        "a": 'import { b } from "./b.js";\nconst same = 1;\nconsole.log(same + b);\n',
        "b": "const same = 2;\nexport const b = same;\n",
    }
    text = bundle_modules(modules, "a")
    assert text.index("b_js = ") < text.index("a_js = ")
    assert "const { b } = b_js;" in text
    assert "return { b };" in text
    if node := shutil.which("node"):
        done = subprocess.run([node, "-e", text], capture_output=True, text=True, check=True)
        assert done.stdout == "3\n"


@pytest.mark.parametrize(
    ("modules", "match"),
    [
        ({"a": 'import { x } from "./b.js";\n'}, r"a: imports b\.js, which does not exist"),
        ({"a": 'import { x, y } from "./b.js";\n', "b": "export const x = 1;\n"}, r"a\.js imports y, which b\.js"),
        (
            {"a": 'import { b } from "./b.js";\n', "b": 'import { a } from "./a.js";\nexport const b = 1;\n'},
            "in a circle: a -> b -> a",
        ),
        ({"a": 'import * as b from "./b.js";\n'}, r"unsupported form of import or export: import \* as b"),
        ({"a": "export default 1;\n"}, "unsupported form of import or export: export default"),
        ({"a": "const x = '</script>';\n"}, "cannot contain </script"),
    ],
)  # fmt: skip
def test_what_cannot_be_put_together_is_refused(modules: dict[str, str], match: str):
    with pytest.raises(UsageError, match=match):
        bundle_modules(modules, "a")


def test_every_module_of_the_page_is_used_and_every_export_is_imported_somewhere():
    text = bundle_modules(MODULES, "main")
    assert all(f"const {name}_js = " in text for name in MODULES)
    imported = {
        (other, name)
        for source in MODULES.values()
        for names, other in re.findall(r'^import \{ ([\w, ]+) \} from "\./(\w+)\.js";$', source, re.MULTILINE)
        for name in names.split(", ")
    }
    unused = {(module, name) for module, source in MODULES.items() for name in exported_names(source)} - imported
    assert unused == set()


@pytest.mark.parametrize("file", sorted(STATIC.iterdir()), ids=lambda file: file.name)
def test_no_file_of_the_page_names_another_machine_or_makes_markup_of_strings(file: Path):
    text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|@import|url\(", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
    assert file.suffix == ".json" or len(text.splitlines()) <= 250
