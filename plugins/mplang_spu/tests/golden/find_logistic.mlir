module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.logistic %arg0 : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
