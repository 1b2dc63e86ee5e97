internal import Inference
