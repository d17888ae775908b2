"""The documentation as a site: `python -m tools.docs_site` makes pages of docs/ for Zensical, and has it build them.

navigation   the order of the pages
pages        docs/ and what it links to, as Zensical is given it
report       the report of the captured topic, as an example that is alive
checking     what is built needs nothing of other hosts, and leads nowhere else
"""
