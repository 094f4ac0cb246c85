-- The arguments by name, and every algorithm as functions on a state: for what is not asked with every request.

-- @include fields
-- Units that may still be charged beyond a limit of which `used` are; see algorithms/limit-options.ts.
local function room_beyond(limit, used)
  return math.max(0, math.min(2 * limit.limit, 4294967295) - used)
end

-- @inline log.functions
-- @inline counter.functions
-- @inline parts.functions
-- @inline bucket.functions
-- @algorithms

local position = 1

local function next_number()
  position = position + 1
  return tonumber(ARGV[position])
end

-- Four numbers a limit: algorithm, limit, window or hold in microseconds or refill per second, buckets.
local function read_limits()
  local makers, made, limits = { make_log, make_counter, make_parts, make_bucket }, {}, {}
  for index = 1, next_number() do
    local which, units, number, parts = next_number(), next_number(), next_number(), next_number()
    made[which] = made[which] or (makers[which] or other_makers[which])()
    limits[index] = {
      which = which,
      algorithm = made[which],
      limit = units,
      limit_text = ARGV[position - 2],
      window_us = number,
      refill_per_second = number,
      buckets = parts,
    }
  end
  return limits
end
