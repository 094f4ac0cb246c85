-- Sliding-window counter in sub-windows; see src/algorithms/sliding-window-buckets.ts.
-- @kind parts units span parts
--
-- A hash: `start` of the newest part in milliseconds, and `counts` of the parts, newest first, with commas between. `reset`
-- is the time of the last reset in milliseconds. `span` is the window in milliseconds, `parts` is how many it is cut into.

-- @prepare
-- Rounded up: the parts never cover less than the window.
local part_N = ceil(span_N / parts_N)
local part_start_N = now_ms - now_ms % part_N

-- @load
-- `counts` are as stored, `passed` parts ago; the first `live` of them count.
local fields_N = call('HMGET', key_N, 'start', 'counts')
local start_N, counts_N, live_N, passed_N, used_N, newest_N, odd_N = part_start_N, nil, 0, parts_N + 1, 0, 0, false
local counts_text_N = fields_N[2] or ''
if fields_N[1] then
  local stored = #fields_N[1] <= 16 and find(fields_N[1], '^%d+$') and fields_N[1] + 0
  local is_read = stored and find(counts_text_N, '^%d[%d,]*$')
  if is_read then
    -- One call for all numbers; two commas in a row are not ours.
    is_read, counts_N = pcall(cjson.decode, '[' .. counts_text_N .. ']')
  end
  if not is_read then
    error(BAD_STATE, 0)
  end
  -- From before the clock stepped back where it would deny for more than two windows.
  if stored - now_ms <= 2 * span_N - (parts_N + 1) * part_N then
    if stored > now_ms then
      start_N, odd_N = stored - stored % part_N, true
    end
    passed_N = (start_N - stored) / part_N
    if passed_N <= parts_N then
      live_N = math.min(parts_N + 1 - passed_N, #counts_N)
      for index = 1, live_N do
        used_N = used_N + counts_N[index]
      end
      if passed_N == 0 then
        newest_N = counts_N[1]
      end
      if used_N > 9007199254740991 then
        error(BAD_STATE, 0)
      end
    end
  end
elseif call('EXISTS', key_N) == 1 then
  error(BAD_STATE, 0)
end
local left_N = units_N - used_N - cost_N

-- @charge
write_parts(key_N, start_N, newest_N + cost_N, counts_N, counts_text_N, live_N, passed_N, span_N)

-- @state start_N - passed_N * part_N, live_N > 0 and counts_text_N or ''

-- @functions
local function write_parts(key, start, newest, counts, counts_text, live, passed, span)
  local text = format('%d', newest)
  -- The older parts stay as they are written.
  if passed > 0 then
    text = live == 0 and text or text .. string.rep(',0', passed - 1) .. ',' .. table.concat(counts, ',', 1, live)
  elseif live > 1 then
    text = text .. string.sub(counts_text, find(counts_text, ',', 1, true), -1)
  end
  call('HSET', key, 'start', format('%d', start), 'counts', text)
  -- Two windows from the first write in a part cover all the time in which what is written in it can matter.
  if passed > 0 then
    call('PEXPIRE', key, format('%d', math.max(0, start - now_ms) + 2 * span + grace_ms))
  end
end

-- @refund
local charged_ms = charged_at and (charged_at - charged_at % 1000) / 1000
if charged_ms and charged_ms <= (tonumber(call('HGET', key_N, 'reset') or nil) or 0) then
  return 0
end
local charged_age = charged_ms and (start_N - (charged_ms - charged_ms % part_N)) / part_N
local left = amount
for index = live_N, 1, -1 do
  if not charged_at or charged_age == index - 1 + passed_N then
    local back = math.min(left, counts_N[index])
    counts_N[index] = counts_N[index] - back
    left = left - back
  end
end
if left < amount then
  newest_N = passed_N == 0 and counts_N[1] or 0
  write_parts(key_N, start_N, newest_N, counts_N, table.concat(counts_N, ',', 1, live_N), live_N, passed_N, span_N)
end
return amount - left

-- @beyond
local more = math.min(amount, room_beyond(units_N, used_N))
if more > 0 then
  write_parts(key_N, start_N, newest_N + more, counts_N, counts_text_N, live_N, passed_N, span_N)
end

-- @reset
local reset = math.max(odd_N and start_N or now_ms, tonumber(call('HGET', key_N, 'reset') or nil) or 0)
call('DEL', key_N)
call('HSET', key_N, 'reset', format('%d', reset), 'start', '0', 'counts', '0')
call('PEXPIRE', key_N, format('%d', math.max(0, start_N - now_ms) + 2 * span_N + grace_ms))
