module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xui8>, %arg1: tensor<2xui8>) -> tensor<2xui8> {
    %c = stablehlo.constant dense<127> : tensor<2xui8>
    %0 = stablehlo.compare  GT, %arg0, %c : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xi1>
    %c_0 = stablehlo.constant dense<0> : tensor<2xui8>
    %c_1 = stablehlo.constant dense<255> : tensor<2xui8>
    %1 = stablehlo.select %0, %c_1, %c_0 : tensor<2xi1>, tensor<2xui8>
    %2 = stablehlo.xor %arg0, %1 : tensor<2xui8>
    %3 = stablehlo.shift_right_logical %2, %arg1 : tensor<2xui8>
    %4 = stablehlo.xor %3, %1 : tensor<2xui8>
    return %4 : tensor<2xui8>
  }
}
