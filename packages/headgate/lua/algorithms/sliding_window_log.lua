-- Sliding-window log; see src/algorithms/sliding-window-log.ts.
-- @kind log units span
--
-- A sorted set: score = when the charge counts, in microseconds; member = running total of units, 13 digits wide so that
-- entries of one microsecond sort in the order they came, a colon, and that time again, 16 digits wide: reading a score would
-- cost more than all else. The newest entry that has left the window is kept: its total is what the use of the window is counted
-- from. An entry that adds nothing to the total marks a reset.
-- `span` is the window in microseconds.

-- @prepare
-- The time to live is renewed once in an eighth of the window, and so is up to an eighth longer.
local keep_us_N = span_N + ceil(span_N / 8)
local stretch_N = now - now % ceil(span_N / 8)

-- @load
local newest_N = call('ZRANGE', key_N, '-1', '-1')[1]
local total_N, used_N, base_N, base_us_N, older_N, last_N, at_N, odd_N, is_former_N, leaves_N =
  0, 0, 0, nil, false, 0, now, false, false, -1
if newest_N then
  total_N, last_N = read_entry(newest_N)
  if last_N > now + span_N then
    -- From before the clock stepped back; it would lock the key.
    total_N, is_former_N = 0, true
  else
    if last_N > now then
      at_N, odd_N = last_N, true
    end
    if last_N <= at_N - span_N then
      base_N, base_us_N, older_N = total_N, last_N, true
    else
      -- Mostly nothing has left, or the one entry that is kept: whatever else had left is gone since the last charge.
      local oldest = call('ZRANGE', key_N, '0', '1')
      local edge = at_N - span_N
      local total, time_us = read_entry(oldest[1])
      if time_us <= edge then
        local _, next_us = read_entry(oldest[2])
        if next_us <= edge then
          older_N = true
          local gone = call('ZCOUNT', key_N, '-inf', format('%d', edge))
          total, time_us = read_entry(call('ZRANGE', key_N, gone - 1, gone - 1)[1])
        end
        base_N, base_us_N = total, time_us
      end
    end
    used_N = total_N - base_N
  end
end
local left_N = units_N - used_N - cost_N

-- @charge
-- The first write is one that a server which is out of memory refuses: whatever follows it is let through.
if is_former_N then
  call('ZADD', key_N, '0', '0')
  call('DEL', key_N)
elseif total_N + cost_N > 9999999999999 then
  total_N, older_N, is_former_N = restart_totals(key_N, at_N - span_N, base_N, used_N), false, true
end
local at_text = odd_N and format('%016d', at_N) or now_text
call('ZADD', key_N, at_text, format('%013d:', total_N + cost_N) .. at_text)
if older_N then
  call('ZREMRANGEBYSCORE', key_N, '-inf', '(' .. format('%d', base_us_N))
end
if odd_N or is_former_N or last_N < stretch_N then
  call('PEXPIRE', key_N, format('%d', ceil((at_N - now + keep_us_N) / 1000) + grace_ms))
end

-- @state used_N, last_N, leaves_N

-- @deny
-- When the entry leaves whose leaving makes room: the first live one whose running total is at least this much.
if left_N < 0 and cost_N <= units_N then
  leaves_N = leaves_at(key_N, at_N - span_N, total_N + cost_N - units_N)
end

-- @functions
-- The running total and the time of an entry.
local function read_entry(member)
  if #member ~= 30 or string.byte(member, 14) ~= 58 then
    error(BAD_STATE, 0)
  end
  return string.sub(member, 1, 13) + 0, string.sub(member, 15) + 0
end

local function add_entry(key, total, time_us)
  local time_text = format('%016d', time_us)
  call('ZADD', key, time_text, format('%013d:', total) .. time_text)
end

-- Counts totals from zero again, long before they outgrow their 13 digits. Returns the new total.
local function restart_totals(key, edge, base, used)
  local entries = call('ZRANGEBYSCORE', key, '(' .. format('%d', edge), '+inf')
  call('ZADD', key, '0', '0')
  call('DEL', key)
  for _, member in ipairs(entries) do
    local total, time_us = read_entry(member)
    add_entry(key, total - base, time_us)
  end
  return used
end

local function leaves_at(key, edge, needed)
  local low = call('ZCOUNT', key, '-inf', format('%d', edge))
  local total, time_us = read_entry(call('ZRANGE', key, low, low)[1])
  -- Mostly it is the oldest.
  if total >= needed then
    return time_us
  end
  local high = call('ZCARD', key) - 1
  low = low + 1
  while low < high do
    local middle = floor((low + high) / 2)
    if read_entry(call('ZRANGE', key, middle, middle)[1]) >= needed then
      high = middle
    else
      low = middle + 1
    end
  end
  total, time_us = read_entry(call('ZRANGE', key, low, low)[1])
  return time_us
end

-- @refund
-- Later totals are lowered, so everything from the first refunded entry on is written again.
if used_N == 0 then
  return 0
end
local edge = at_N - span_N
if charged_at and charged_at <= edge then
  return 0
end
local from = charged_at and format('%d', charged_at) or '(' .. format('%d', edge)
local entries = call('ZRANGEBYSCORE', key_N, from, '+inf')
if #entries == 0 then
  return 0
end
local first_total, first_us = read_entry(entries[1])
if charged_at and first_us ~= charged_at then
  return 0
end
local rank = call('ZRANK', key_N, entries[1])
local before = rank > 0 and read_entry(call('ZRANGE', key_N, rank - 1, rank - 1)[1]) or 0
if charged_at and first_total == before then
  return 0
end
local left, kept_total, original = amount, before, before
call('ZREMRANGEBYSCORE', key_N, from, '+inf')
if base_us_N then
  -- The newest entry may be gone, and with it the time below which this key does not go: what had left stays gone.
  call('ZREMRANGEBYSCORE', key_N, '-inf', format('%d', base_us_N))
  add_entry(key_N, base_N, 0)
end
for _, member in ipairs(entries) do
  local total, time_us = read_entry(member)
  local cost = total - original
  local back = 0
  if not charged_at or time_us == charged_at then
    back = math.min(left, cost)
  end
  original = total
  left = left - back
  if back < cost or cost == 0 then
    kept_total = kept_total + cost - back
    add_entry(key_N, kept_total, time_us)
  end
end
call('PEXPIRE', key_N, format('%d', ceil((math.max(0, last_N - now) + keep_us_N) / 1000) + grace_ms))
return amount - left

-- @beyond
local more = math.min(amount, room_beyond(units_N, used_N))
if more > 0 then
  cost_N = more
  -- @charge
end

-- @reset
call('DEL', key_N)
if not is_former_N and newest_N and last_N > at_N - span_N then
  add_entry(key_N, 0, at_N)
  call('PEXPIRE', key_N, format('%d', ceil((at_N - now + keep_us_N) / 1000) + grace_ms))
end
