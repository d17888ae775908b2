"""The documentation as a site: `python -m tools.docs_site` prepares the pages of docs/ for Zensical, and runs it.

navigation   the order of the pages
pages        the files for Zensical: docs/ and what it links to
report       the report of the captured topic, as an interactive example
checking     checks of the built site: its links, and that it loads nothing from other hosts
"""
