-- Sliding-window log; see algorithms/sliding-window-log.ts.
-- A sorted set: score = when the charge counts, in microseconds; member = running total of units, 13 digits wide so
-- that entries of one microsecond sort in the order they came. The newest entry that has left the window is kept: its
-- total is what the use of the window is counted from. An entry that adds nothing to the total marks a reset.
-- `units` are the limit's, `span` is its window in microseconds.

-- @fragment log.locals
local total, used, base_total, base_us, has_older, last_us, is_forgotten, edge_text, log_keep_text

-- @fragment log.prepare
-- The same for all keys: the end of what has left the window, the time as it is written, how long a state is kept.
-- @inline clock.now_text
edge_text = format('%d', now - span)
log_keep_text = format('%d', ceil(span / 1000) + grace_ms)

-- @fragment log.load
-- In: `key`, and what log.prepare worked out. Out: `at` and the locals above, or `failure`. A total is a member of 13 digits; a score that Redis writes
-- with an exponent may still be a time.
local newest = try('ZRANGE', key, '-1', '-1', 'WITHSCORES')
total, used, base_total, base_us, has_older, last_us, is_forgotten, at = 0, 0, 0, nil, false, nil, false, now
if newest.err then
  failure = newest.err
elseif newest[1] then
  total, last_us = #newest[1] == 13 and find(newest[1], '^%d+$') and newest[1] + 0, newest[2] + 0
  if not (total and last_us >= 0 and last_us <= MAX_SAFE and last_us % 1 == 0) then
    failure = BAD_STATE
  elseif last_us > now + span then
    -- From before the clock stepped back; it would lock the key.
    total, is_forgotten = 0, true
  else
    if last_us > now then
      at = last_us
    end
    if last_us <= at - span then
      base_total, base_us, has_older = total, last_us, true
    else
      local edge = at == now and edge_text or format('%d', at - span)
      local gone = call('ZREVRANGEBYSCORE', key, edge, '-inf', 'WITHSCORES', 'LIMIT', '0', '2')
      if gone[1] then
        base_total, base_us, has_older = #gone[1] == 13 and whole(gone[1]), gone[2] + 0, gone[3]
        if not base_total then
          failure = BAD_STATE
        end
      end
    end
    used = total - (base_total or 0)
  end
end

-- @fragment log.wait
-- In: `cost` and what was loaded. Out: `wait_us`, or `failure`.
if cost > units then
  wait_us = NEVER
elseif used + cost <= units then
  wait_us = 0
else
  -- The first live entry whose running total is at least this much: its leaving makes room.
  local needed = total + cost - units
  local low = call('ZCOUNT', key, '-inf', format('%d', at - span))
  local entry = call('ZRANGE', key, low, low, 'WITHSCORES')
  local total_then = whole(entry[1])
  if total_then and total_then < needed then
    local high = call('ZCARD', key) - 1
    low = low + 1
    while total_then and low < high do
      local middle = floor((low + high) / 2)
      total_then = whole(call('ZRANGE', key, middle, middle)[1])
      if total_then and total_then >= needed then
        high = middle
      else
        low = middle + 1
      end
    end
    entry = call('ZRANGE', key, low, low, 'WITHSCORES')
  end
  if total_then then
    wait_us = tonumber(entry[2]) + span - now
  else
    failure = BAD_STATE
  end
end

-- @fragment log.charge
-- The first write is one that a server which is out of memory refuses: whatever follows it is let through.
if is_forgotten then
  call('ZADD', key, '0', '0000000000000')
  call('DEL', key)
  is_forgotten = false
elseif total + cost > 9999999999999 then
  -- Counts totals from zero again, long before they outgrow their 13 digits.
  local entries = call('ZRANGEBYSCORE', key, '(' .. format('%d', at - span), '+inf', 'WITHSCORES')
  call('ZADD', key, '0', '0000000000000')
  call('DEL', key)
  for index = 1, #entries, 2 do
    local counted = (tonumber(entries[index]) or base_total) - base_total
    call('ZADD', key, entries[index + 1], format('%013d', counted))
  end
  total, base_total, base_us, has_older = used, 0, nil, false
end
total, used, last_us = total + cost, used + cost, at
local at_text, keep_text = now_text, log_keep_text
if at ~= now then
  at_text = format('%d', at)
  keep_text = format('%d', ceil((at - now + span) / 1000) + grace_ms)
end
call('ZADD', key, at_text, format('%013d', total))
if has_older then
  call('ZREMRANGEBYSCORE', key, '-inf', '(' .. format('%d', base_us))
end
call('PEXPIRE', key, keep_text)

-- @fragment log.left
left = units - used

-- @fragment log.tell
-- Units left, and the time until the whole limit is free again.
remaining = used < units and units - used or 0
reset_us = used == 0 and 0 or last_us + span - now

-- @fragment log.keep
kept[check] = { total, used, base_total, base_us or false, has_older, last_us or false, is_forgotten, at }

-- @fragment log.recall
local state = kept[check]
total, used, base_total, base_us, has_older = state[1], state[2], state[3], state[4], state[5]
last_us, is_forgotten, at = state[6], state[7], state[8]

-- @fragment log.functions
local function make_log()
  local log = {}

  function log.load(key, limit)
    local span, at, failure, now_text = limit.window_us, nil, nil, nil
    -- @inline log.locals
    -- @inline log.prepare
    -- @inline log.load
    if failure then
      return nil, failure
    end
    return {
      key = key,
      total = total,
      used = used,
      has_older = has_older,
      base_total = base_total,
      base_us = base_us,
      last_us = last_us,
      is_forgotten = is_forgotten,
      at = at,
    }
  end

  local function member_of(total)
    return format('%013d', total)
  end

  function log.charge_beyond(limit, state, units)
    local cost, key, span, at = math.min(units, room_beyond(limit, state.used)), state.key, limit.window_us, state.at
    local total, used, base_total, base_us = state.total, state.used, state.base_total, state.base_us
    local has_older, last_us, is_forgotten = state.has_older, state.last_us, state.is_forgotten
    local now_text, edge_text, log_keep_text
    if cost > 0 then
      -- @inline log.prepare
      -- @inline log.charge
    end
  end

  -- Later totals are lowered, so everything from the first refunded entry on is written again.
  function log.refund(limit, state, units, charged_at)
    if state.used == 0 then
      return 0
    end
    local edge = state.at - limit.window_us
    if charged_at and charged_at <= edge then
      return 0
    end
    local from = charged_at and text_of(charged_at) or '(' .. text_of(edge)
    local entries = call('ZRANGEBYSCORE', state.key, from, '+inf', 'WITHSCORES')
    if #entries == 0 or (charged_at and tonumber(entries[2]) ~= charged_at) then
      return 0
    end
    local rank = call('ZRANK', state.key, entries[1])
    local before = rank > 0 and tonumber(call('ZRANGE', state.key, rank - 1, rank - 1)[1]) or 0
    if charged_at and tonumber(entries[1]) == before then
      return 0
    end
    local left, kept_total, original = units, before, before
    call('ZREMRANGEBYSCORE', state.key, from, '+inf')
    if state.base_us then
      -- The newest entry may be gone, and with it the time below which this key does not go: what had left stays gone.
      call('ZREMRANGEBYSCORE', state.key, '-inf', state.base_us)
      call('ZADD', state.key, 0, member_of(state.base_total))
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
        call('ZADD', state.key, time_us, member_of(kept_total))
      end
    end
    expire_after(state.key, math.max(0, state.last_us - now) + limit.window_us)
    return units - left
  end

  return log
end
