import Inference
import Foundation
let pool = try WorkerPool()
let t0 = Date()
let file = try GGUFFile(path: CommandLine.arguments[1])
let t1 = Date()
let model = try LlamaModel(file: file, pool: pool)
let t2 = Date()
print(pool.threads, pool.instructionSet, "header", t1.timeIntervalSince(t0)*1e3, "weights", t2.timeIntervalSince(t1)*1e3)
let cache = try KVCache(configuration: model.configuration, capacity: 4096)
func tokens(_ n: Int) -> [TokenID] { (0..<n).map { TokenID(($0 * 7919 + 13) % 49000 + 100) } }
for n in [1, 5, 128, 512, 2048] {
  for _ in 0..<3 {
  cache.truncate(to: 0)
  let s = Date()
  try model.forward(tokens(n)[...], cache: cache)
  let dt = Date().timeIntervalSince(s)
  let l = Array(model.logits)
  let best = l.enumerated().sorted { $0.element > $1.element }.prefix(3)
  print(n, "tok/s", Double(n)/dt, best.map { ($0.offset, $0.element) })
  }
}
for depth in [0, 2048] {
  cache.truncate(to: 0)
  if depth > 0 { try model.forward(tokens(depth)[...], cache: cache) }
  for _ in 0..<3 {
  cache.truncate(to: depth)
  let s = Date()
  for i in 0..<128 { try model.forward([TokenID(1000+i)][...], cache: cache) }
  print("gen at", depth, 128/Date().timeIntervalSince(s))
  }
}
