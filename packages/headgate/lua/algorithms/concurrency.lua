-- Concurrency; see src/algorithms/concurrency.ts.
-- @kind permits units span
--
-- A sorted set of permits: score = when it expires, in microseconds; member = when it was taken, 16 digits wide, and for the
-- second unit and on of one request `.1`, `.2` and so on behind it. `reset:<time>` with a score of -1 keeps the latest that was
-- taken before the last reset. `span` is how long a permit is held, in microseconds.

-- @prepare
local from_N, to_N = '(' .. format('%d', now), format('%d', now + 2 * span_N)

-- @load
local first_N = call('ZRANGE', key_N, '0', '0')[1]
local used_N, last_N, frees_N, taken_N, reset_us_N, is_dead_N, odd_N = 0, now, -1, -1, 0, false, true
if first_N then
  local reset = string.match(first_N, '^reset:(%d+)$')
  if not (reset or taken_of(first_N)) then
    error(BAD_STATE, 0)
  end
  reset_us_N = (reset or 0) + 0
  used_N = call('ZCOUNT', key_N, from_N, to_N)
  -- Permits that have expired, or are from before the clock stepped back, are left to whoever writes.
  is_dead_N = call('ZCARD', key_N) - used_N > (reset and 1 or 0)
  if used_N > 0 then
    last_N = call('ZREVRANGEBYSCORE', key_N, to_N, from_N, 'WITHSCORES', 'LIMIT', '0', '1')[2] + 0
  end
end
local left_N = units_N - used_N - cost_N

-- @charge
if is_dead_N then
  drop_dead(key_N, to_N)
end
taken_N = math.max(now, reset_us_N + 1)
while call('ZSCORE', key_N, permit_member(taken_N, 0)) do
  taken_N = taken_N + 1
end
hold(key_N, taken_N, cost_N, span_N)

-- @state used_N, last_N, frees_N, taken_N

-- @deny
if left_N < 0 and cost_N <= units_N then
  local permit = call('ZRANGEBYSCORE', key_N, from_N, to_N, 'WITHSCORES', 'LIMIT', format('%d', -left_N - 1), '1')
  frees_N = (permit[2] or -1) + 0
end

-- @functions
local function permit_member(taken, unit)
  return unit == 0 and format('%016d', taken) or format('%016d.%d', taken, unit)
end

-- When a permit was taken, or nil when Headgate did not write it.
local function taken_of(member)
  local sixteen = string.rep('%d', 16)
  return tonumber(string.match(member, '^(' .. sixteen .. ')$') or string.match(member, '^(' .. sixteen .. ')%.%d+$'))
end

local function drop_dead(key, to)
  call('ZREMRANGEBYSCORE', key, '0', format('%d', now))
  call('ZREMRANGEBYSCORE', key, '(' .. to, '+inf')
end

local function hold(key, taken, units, span)
  local expires = format('%d', now + span)
  for unit = 0, units - 1 do
    call('ZADD', key, expires, permit_member(taken, unit))
  end
  call('PEXPIRE', key, format('%d', ceil(2 * span / 1000) + grace_ms))
end

local function count_held(key, taken)
  local held = 0
  while call('ZSCORE', key, permit_member(taken, held)) do
    held = held + 1
  end
  return held
end

-- Gives up to `units` of one request back, the last first: those that stay are numbered from the first.
local function give_back(key, taken, units)
  local held = count_held(key, taken)
  local back = math.min(units, held)
  for unit = held - back, held - 1 do
    call('ZREM', key, permit_member(taken, unit))
  end
  return back
end

-- @refund
if charged_at then
  local expires = tonumber(call('ZSCORE', key_N, permit_member(charged_at, 0)) or nil)
  local is_live = expires and expires > now and expires <= now + 2 * span_N
  return is_live and give_back(key_N, charged_at, amount) or 0
end
local left = math.min(amount, used_N)
local back = left
while left > 0 do
  local first = call('ZRANGEBYSCORE', key_N, from_N, to_N, 'LIMIT', '0', '1')
  local given = give_back(key_N, taken_of(first[1]) or error(BAD_STATE, 0), left)
  if given == 0 then
    error(BAD_STATE, 0)
  end
  left = left - given
end
return back

-- @renew
-- Held for another while, taken again if it was gone and there is room.
if is_dead_N then
  drop_dead(key_N, to_N)
end
local held = count_held(key_N, charged_at)
if held == 0 and used_N + amount > units_N then
  return 0
end
hold(key_N, charged_at, held > 0 and held or amount, span_N)
return 1

-- @reset
-- Leaves the latest that was taken, so that no new permit gets the name of an old one.
local latest = reset_us_N
for _, member in ipairs(call('ZRANGE', key_N, '0', '-1')) do
  latest = math.max(latest, taken_of(member) or 0)
end
call('DEL', key_N)
call('ZADD', key_N, '-1', 'reset:' .. format('%d', latest))
call('PEXPIRE', key_N, format('%d', ceil(2 * span_N / 1000) + grace_ms))
