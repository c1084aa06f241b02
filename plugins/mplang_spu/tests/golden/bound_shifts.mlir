module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xi32>, %arg1: tensor<2xi32>) -> tensor<2xi32> {
    %c = stablehlo.constant dense<32> : tensor<2xi32>
    %0 = stablehlo.compare  LT, %arg1, %c : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %c_0 = stablehlo.constant dense<0> : tensor<2xi32>
    %1 = stablehlo.compare  LT, %arg1, %c_0 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %2 = stablehlo.not %1 : tensor<2xi1>
    %3 = stablehlo.and %0, %2 : tensor<2xi1>
    %c_1 = stablehlo.constant dense<31> : tensor<2xi32>
    %4 = stablehlo.select %3, %arg1, %c_1 : tensor<2xi1>, tensor<2xi32>
    %5 = stablehlo.shift_right_arithmetic %arg0, %4 : tensor<2xi32>
    return %5 : tensor<2xi32>
  }
}
