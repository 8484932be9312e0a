"""A sandbox in a folder, which programs may change meanwhile.

    folder.py      FolderSandbox: the adapter
    descent.py     from a path to an open folder and a name in it, never leaving the root
    tree_walk.py   all regular files below the root
    whole_file.py  reads a file, gives it new bytes, within an open folder
    edit_lock.py   one writer at a time, among threads and processes
    typed_errors.py  what the system answers, as SandboxRefused or StoreError

All access is relative to descriptors of open folders, and no system call follows a link: what is
checked is what is used, whoever swaps folders and links meanwhile.

Extend tests/integration/test_sandbox_files_contract.py (with the twin in memory), and
tests/integration/test_folder_sandbox*.py for what needs a disk.

Source: specification E8, E12; STYLE habit 10.
"""

from resources.sandbox.folder import FolderSandbox

__all__ = ["FolderSandbox"]
