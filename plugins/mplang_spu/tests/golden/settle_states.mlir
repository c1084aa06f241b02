module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> (tensor<f32>, tensor<f32>) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<3> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0:4 = stablehlo.while(%iterArg = %c_1, %iterArg_2 = %c_1, %iterArg_3 = %arg0, %iterArg_4 = %arg1) : tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>
    cond {
      %1 = stablehlo.compare  LT, %iterArg, %c_0,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %c_5 = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %iterArg_2, %c_5 : tensor<i32>
      %2 = stablehlo.add %iterArg, %c : tensor<i32>
      %c_6 = stablehlo.constant dense<0> : tensor<i32>
      %3 = stablehlo.compare  GT, %arg2, %c_6 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %4 = stablehlo.select %3, %iterArg_4, %iterArg_3 : tensor<i1>, tensor<f32>
      stablehlo.return %2, %1, %4, %iterArg_3 : tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>
    }
    return %0#2, %0#3 : tensor<f32>, tensor<f32>
  }
}
// operand: int32 1
