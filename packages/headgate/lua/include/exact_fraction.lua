-- a * b / c in whole numbers, exact although a * b may need 77 bits; see algorithms/exact-fraction.ts.

-- @fragment fraction.floor
-- In: `a`, `b`, `c`. Out: `quotient`.
local quotient = a * b
if quotient <= MAX_SAFE then
  quotient = floor(quotient / c)
else
  local remainder, rest, place = 0, a, 268435456
  quotient = 0
  while place >= 1 do
    local digit = floor(rest / place)
    rest = rest - digit * place
    local step = remainder * 128 + digit * b
    local part = floor(step / c)
    quotient = quotient * 128 + part
    remainder = step - part * c
    place = place / 128
  end
end
