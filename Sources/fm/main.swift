import Inference
import Foundation
let args = CommandLine.arguments
let pool = try WorkerPool(threads: Int(args[2]), instructionSet: args.count > 4 ? InstructionSet(rawValue: args[4]) : nil)
let file = try GGUFFile(path: args[1])
let model = try LlamaModel(file: file, pool: pool)
let cache = try KVCache(configuration: model.configuration, capacity: 4096)
func tokens(_ n: Int) -> [TokenID] { (0..<n).map { TokenID(($0 * 7919 + 13) % 49000 + 100) } }
let mode = args[3]
if mode.hasPrefix("p") {
  let n = Int(mode.dropFirst())!
  for _ in 0..<6 { cache.truncate(to: 0); let s = Date(); try model.forward(tokens(n)[...], cache: cache); print(mode, Double(n)/Date().timeIntervalSince(s)) }
} else {
  let depth = Int(mode.dropFirst())!
  if depth > 0 { try model.forward(tokens(depth)[...], cache: cache) }
  for _ in 0..<6 { cache.truncate(to: depth); let s = Date(); for i in 0..<128 { try model.forward([TokenID(1000+i)][...], cache: cache) }; print(mode, 128/Date().timeIntervalSince(s)) }
}
