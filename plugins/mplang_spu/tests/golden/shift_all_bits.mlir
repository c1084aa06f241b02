module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xi32>) -> tensor<2xi32> {
    %c = stablehlo.constant dense<3> : tensor<2xi32>
    %0 = stablehlo.and %arg0, %c : tensor<2xi32>
    %c_0 = stablehlo.constant dense<1> : tensor<2xi32>
    %c_1 = stablehlo.constant dense<-1> : tensor<2xi32>
    %1 = stablehlo.xor %0, %c_1 : tensor<2xi32>
    %2 = stablehlo.shift_right_arithmetic %1, %c_0 : tensor<2xi32>
    %3 = stablehlo.xor %2, %c_1 : tensor<2xi32>
    return %3 : tensor<2xi32>
  }
}
