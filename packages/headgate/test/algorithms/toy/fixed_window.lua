-- Fixed window; see fixed-window.ts.
-- @kind fixed units span
--
-- A hash: `start` of the last window and units `used` in it.

-- @prepare
local window_start_N = now - now % span_N

-- @load
local fields_N = call('HMGET', key_N, 'start', 'used')
local stored_N = (fields_N[1] or 0) + 0
-- A clock that stepped back stays in the last window.
local odd_N = stored_N > now
local start_N = stored_N > window_start_N and stored_N or window_start_N
local used_N = stored_N == start_N and (fields_N[2] or 0) + 0 or 0
local left_N = units_N - used_N - cost_N

-- @charge
call('HSET', key_N, 'start', format('%d', start_N), 'used', format('%d', used_N + cost_N))
call('PEXPIRE', key_N, format('%d', ceil(span_N / 1000) + grace_ms))

-- @state start_N, used_N

-- @refund
local back = math.min(amount, used_N)
call('HSET', key_N, 'used', format('%d', used_N - back))
return back

-- @reset
call('DEL', key_N)
