# Written by `make format`.
from evdist import belief as belief
from evdist import combine as combine
from evdist import conformal as conformal
from evdist import features as features
from evdist import metrics as metrics
from evdist import mixture as mixture
from evdist import plot as plot
from evdist import progress as progress
from evdist import report as report
from evdist.belief import FocalSets as FocalSets
from evdist.bootclus.estimator import Bootclus as Bootclus
from evdist.constraints import expand_constraints as expand_constraints
from evdist.constraints import propose_links as propose_links
from evdist.ecm.bcm import BCM as BCM
from evdist.ecm.belief_peaks import delta_bel as delta_bel
from evdist.ecm.bpec import BPEC as BPEC
from evdist.ecm.ccm import CCM as CCM
from evdist.ecm.cecm import CECM as CECM
from evdist.ecm.estimator import ECM as ECM
from evdist.ecm.recm import RECM as RECM
from evdist.ecm.secm import SECM as SECM
from evdist.egmm.estimator import EGMM as EGMM
from evdist.eknn.classifier import EKNNClassifier as EKNNClassifier
from evdist.eknn.clus import EKNNclus as EKNNclus
from evdist.eknn.network import EvidentialNN as EvidentialNN
from evdist.evclus.estimator import EVCLUS as EVCLUS
from evdist.medoids.ecmdd import ECMdd as ECMdd
from evdist.medoids.mecm import MECM as MECM
from evdist.nnevclus.estimator import NNEVCLUS as NNEVCLUS
from evdist.partition import CredalPartition as CredalPartition
from evdist.selection import select as select
from evdist.service.client import Client as Client
from evdist.service.config import JobConfig as JobConfig
from evdist.service.jobs import run as run

__version__: str
