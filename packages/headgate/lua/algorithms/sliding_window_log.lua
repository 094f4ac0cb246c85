-- Sliding-window log; see src/algorithms/sliding-window-log.ts.
-- @kind log units span
--
-- A sorted set: score = when the charge counts, in microseconds; member = running total of units, 13 digits wide so that
-- entries of one microsecond sort in the order they came. The newest entry that has left the window is kept: its total is
-- what the use of the window is counted from. An entry that adds nothing to the total marks a reset.
-- `span` is the window in microseconds.

-- @prepare
local edge_text_N = format('%d', now - span_N)
local keep_text_N = format('%d', ceil(span_N / 1000) + grace_ms)

-- @load
local newest_N = call('ZRANGE', key_N, '-1', '-1', 'WITHSCORES')
local total_N, used_N, base_N, base_us_N, older_N, last_N, at_N, odd_N, is_former_N, leaves_N = 0, 0, 0, nil, false, 0, now, false, false, -1
if newest_N[1] then
  total_N, last_N = #newest_N[1] == 13 and newest_N[1] + 0 or -1, newest_N[2] + 0
  if not (total_N >= 0 and find(newest_N[1], '^%d+$') and last_N >= 0 and last_N <= 9007199254740991 and last_N % 1 == 0) then
    error(BAD_STATE, 0)
  end
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
      local edge = odd_N and format('%d', at_N - span_N) or edge_text_N
      local gone = call('ZREVRANGEBYSCORE', key_N, edge, '-inf', 'WITHSCORES', 'LIMIT', '0', '2')
      if gone[1] then
        if #gone[1] ~= 13 or not find(gone[1], '^%d+$') then
          error(BAD_STATE, 0)
        end
        base_N, base_us_N, older_N = gone[1] + 0, gone[2] + 0, gone[3]
      end
    end
    used_N = total_N - base_N
  end
end
local left_N = units_N - used_N - cost_N

-- @charge
-- The first write is one that a server which is out of memory refuses: whatever follows it is let through.
if is_former_N then
  call('ZADD', key_N, '0', '0000000000000')
  call('DEL', key_N)
elseif total_N + cost_N > 9999999999999 then
  total_N, base_us_N, older_N = restart_totals(key_N, at_N - span_N, base_N, used_N), nil, false
end
local keep_text = odd_N and format('%d', ceil((at_N - now + span_N) / 1000) + grace_ms) or keep_text_N
call('ZADD', key_N, odd_N and format('%d', at_N) or now_text, format('%013d', total_N + cost_N))
if older_N then
  call('ZREMRANGEBYSCORE', key_N, '-inf', '(' .. format('%d', base_us_N))
end
call('PEXPIRE', key_N, keep_text)

-- @state used_N, last_N, leaves_N

-- @deny
-- When the entry leaves whose leaving makes room: the first live one whose running total is at least this much.
if left_N < 0 and cost_N <= units_N then
  leaves_N = leaves_at(key_N, at_N - span_N, total_N + cost_N - units_N)
end

-- @functions
-- Counts totals from zero again, long before they outgrow their 13 digits. Returns the new total.
local function restart_totals(key, edge, base, used)
  local entries = call('ZRANGEBYSCORE', key, '(' .. format('%d', edge), '+inf', 'WITHSCORES')
  call('ZADD', key, '0', '0000000000000')
  call('DEL', key)
  for index = 1, #entries, 2 do
    call('ZADD', key, entries[index + 1], format('%013d', (tonumber(entries[index]) or base) - base))
  end
  return used
end

local function leaves_at(key, edge, needed)
  local low = call('ZCOUNT', key, '-inf', format('%d', edge))
  local high = call('ZCARD', key) - 1
  while true do
    -- Mostly it is the oldest.
    local entry = call('ZRANGE', key, low, low, 'WITHSCORES')
    if entry[1] + 0 >= needed or low >= high then
      return entry[2] + 0
    end
    local from = low + 1
    while from < high do
      local middle = floor((from + high) / 2)
      if call('ZRANGE', key, middle, middle)[1] + 0 >= needed then
        high = middle
      else
        from = middle + 1
      end
    end
    low, high = from, from
  end
end

local function log_member(total)
  return format('%013d', total)
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
local entries = call('ZRANGEBYSCORE', key_N, from, '+inf', 'WITHSCORES')
if #entries == 0 or (charged_at and tonumber(entries[2]) ~= charged_at) then
  return 0
end
local rank = call('ZRANK', key_N, entries[1])
local before = rank > 0 and tonumber(call('ZRANGE', key_N, rank - 1, rank - 1)[1]) or 0
if charged_at and tonumber(entries[1]) == before then
  return 0
end
local left, kept_total, original = amount, before, before
call('ZREMRANGEBYSCORE', key_N, from, '+inf')
if base_us_N then
  -- The newest entry may be gone, and with it the time below which this key does not go: what had left stays gone.
  call('ZREMRANGEBYSCORE', key_N, '-inf', format('%d', base_us_N))
  call('ZADD', key_N, '0', log_member(base_N))
end
for index = 1, #entries, 2 do
  local total, time_us = tonumber(entries[index]), tonumber(entries[index + 1])
  local cost = total - original
  local back = 0
  if not charged_at or time_us == charged_at then
    back = math.min(left, cost)
  end
  original = total
  left = left - back
  if back < cost or cost == 0 then
    kept_total = kept_total + cost - back
    call('ZADD', key_N, format('%d', time_us), log_member(kept_total))
  end
end
call('PEXPIRE', key_N, format('%d', ceil((math.max(0, last_N - now) + span_N) / 1000) + grace_ms))
return amount - left

-- @beyond
local more = math.min(amount, room_beyond(units_N, used_N))
if more > 0 then
  cost_N = more
  -- @charge
end

-- @reset
call('DEL', key_N)
if not is_former_N and newest_N[1] and last_N > at_N - span_N then
  call('ZADD', key_N, format('%d', at_N), log_member(0))
  call('PEXPIRE', key_N, format('%d', ceil((at_N - now + span_N) / 1000) + grace_ms))
end
