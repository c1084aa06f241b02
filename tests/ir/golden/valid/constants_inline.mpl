program "inline" on {0, 1} () {
  %0 = simp.constant() {parties = {0, 1}, value = dense<bool[3]>[true, false, true]} : bool[3]@{0, 1}
  %1 = simp.constant() {parties = {0, 1}, value = dense<bool[]>[true]} : bool[]@{0, 1}
  %2 = simp.constant() {parties = {0, 1}, value = dense<i8[2]>[-128, 127]} : i8[2]@{0, 1}
  %3 = simp.constant() {parties = {0, 1}, value = dense<i16[]>[-32768]} : i16[]@{0, 1}
  %4 = simp.constant() {parties = {0, 1}, value = dense<i32[2, 2]>[1, 2, 3, 4]} : i32[2, 2]@{0, 1}
  %5 = simp.constant() {parties = {0, 1}, value = dense<i64[2]>[-9223372036854775808, 9223372036854775807]} : i64[2]@{0, 1}
  %6 = simp.constant() {parties = {0, 1}, value = dense<u8[1]>[255]} : u8[1]@{0, 1}
  %7 = simp.constant() {parties = {0, 1}, value = dense<u16[1]>[65535]} : u16[1]@{0, 1}
  %8 = simp.constant() {parties = {0, 1}, value = dense<u32[1]>[4294967295]} : u32[1]@{0, 1}
  %9 = simp.constant() {parties = {0, 1}, value = dense<u64[1]>[18446744073709551615]} : u64[1]@{0, 1}
  %10 = simp.constant() {parties = {0, 1}, value = dense<f16[3]>[0.0999755859375, -0.0, 65504.0]} : f16[3]@{0, 1}
  %11 = simp.constant() {parties = {0, 1}, value = dense<f32[4]>[0.10000000149011612, 1.401298464324817e-45, 3.4028234663852886e+38, -0.0]} : f32[4]@{0, 1}
  %12 = simp.constant() {parties = {0, 1}, value = dense<f64[4]>[0.1, 5e-324, 1.7976931348623157e+308, -0.0]} : f64[4]@{0, 1}
  %13 = simp.constant() {parties = {0, 1}, value = dense<f32[0]>[]} : f32[0]@{0, 1}
  %14 = simp.constant() {parties = {0, 1}, value = dense<i64[2, 0, 3]>[]} : i64[2, 0, 3]@{0, 1}
  %15 = simp.constant() {parties = {0, 1}, value = dense<f64[16]>[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]} : f64[16]@{0, 1}
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15
}
