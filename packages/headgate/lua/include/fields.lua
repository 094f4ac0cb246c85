-- Reads the fields of a key, and handles keys that Headgate did not write.
local NEVER, MAX_SAFE = math.huge, 9007199254740991
local BAD_STATE = 'HEADGATE_BAD_STATE the key holds something Headgate did not write'

-- The whole number in a field, or nil when Headgate did not write it: tonumber also takes hex, spaces, inf and nan.
local function whole(text)
  return text and #text <= 16 and string.find(text, '^%d+$') and tonumber(text) or nil
end

-- @fragment hash.empty
-- In: `key`, `fields` without the first of ours. Out: `failure`, if any. A hash without our fields is a new key, or
-- somebody else's: writing to that would expire their data.
if fields.err then
  failure = fields.err
elseif redis.call('EXISTS', key) == 1 then
  failure = BAD_STATE
end
