-- a * b / c in whole numbers, exact although a * b may need 77 bits; see engine/exact-fraction.ts.
local MAX_SAFE = 9007199254740991

local function mul_div_floor(a, b, c)
  local product = a * b
  if product <= MAX_SAFE then
    return math.floor(product / c)
  end
  local quotient, remainder, rest, place = 0, 0, a, 268435456
  while place >= 1 do
    local digit = math.floor(rest / place)
    rest = rest - digit * place
    local step = remainder * 128 + digit * b
    local part = math.floor(step / c)
    quotient = quotient * 128 + part
    remainder = step - part * c
    place = place / 128
  end
  return quotient
end

local function mul_div_ceil(a, b, c)
  local product = a * b
  if product <= MAX_SAFE then
    return math.ceil(product / c)
  end
  return a - mul_div_floor(a, c - b, c)
end
