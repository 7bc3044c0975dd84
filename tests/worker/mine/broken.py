this is no python
