"""The report as a page: one HTML file for people, without a request to anywhere."""

from kafka_records_tables.report.page.page_file import write_page

__all__ = ["write_page"]
