"""The engines that compute tables: processes on this machine, or Spark. Both call the same function once per log
partition."""
