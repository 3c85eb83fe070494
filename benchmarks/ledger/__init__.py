"""The ledger of what five sources print: figures as data, parts that answer, scores, one page.

* `lines`: reads `figures/*.csv`, one line per printed figure, and says the verdict;
* `sets`: the data, split into what a part is given and what only the ledger knows;
* `clusterers`, `others`: the parts, plain functions of what they are given;
* `scores`: what is measured of an answer, once it is there;
* `claims`, `checks`: what the sources say in words, asked of the answers;
* `page`: docs/reproduction.md.

`benchmarks/reproduction.py` is the command.
"""
