module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xi32>) -> tensor<2xi32> {
    %c = stablehlo.constant dense<1> : tensor<2xi32>
    %0 = stablehlo.shift_right_logical %arg0, %c : tensor<2xi32>
    %1 = stablehlo.or %arg0, %0 : tensor<2xi32>
    %c_0 = stablehlo.constant dense<2> : tensor<2xi32>
    %2 = stablehlo.shift_right_logical %1, %c_0 : tensor<2xi32>
    %3 = stablehlo.or %1, %2 : tensor<2xi32>
    %c_1 = stablehlo.constant dense<4> : tensor<2xi32>
    %4 = stablehlo.shift_right_logical %3, %c_1 : tensor<2xi32>
    %5 = stablehlo.or %3, %4 : tensor<2xi32>
    %c_2 = stablehlo.constant dense<8> : tensor<2xi32>
    %6 = stablehlo.shift_right_logical %5, %c_2 : tensor<2xi32>
    %7 = stablehlo.or %5, %6 : tensor<2xi32>
    %c_3 = stablehlo.constant dense<16> : tensor<2xi32>
    %8 = stablehlo.shift_right_logical %7, %c_3 : tensor<2xi32>
    %9 = stablehlo.or %7, %8 : tensor<2xi32>
    %10 = stablehlo.popcnt %9 : tensor<2xi32>
    %c_4 = stablehlo.constant dense<32> : tensor<2xi32>
    %11 = stablehlo.subtract %c_4, %10 : tensor<2xi32>
    return %11 : tensor<2xi32>
  }
}
