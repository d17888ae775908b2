"""Reads live brokers through proxies that disturb them. Every answer must be equal to the served log, or report what
went wrong."""
