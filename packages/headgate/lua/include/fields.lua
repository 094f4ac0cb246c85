-- Reads the fields of a key, and handles keys that Headgate did not write.
-- @include names
local NEVER, MAX_SAFE = math.huge, 9007199254740991
local BAD_STATE = 'HEADGATE_BAD_STATE the key holds something Headgate did not write'

-- The whole number in a field, or nil when Headgate did not write it: tonumber also takes hex, spaces, inf and nan.
local function whole(text)
  return text and #text <= 16 and find(text, '^%d+$') and text + 0 or nil
end

-- @fragment hash.empty
-- In: `key`, `expects_new`, `fields` without the first of ours. Out: `failure`, if any. A hash without our fields is a new
-- key, or somebody else's: writing to that would expire their data. Where a new key was expected it was found to exist.
if fields.err then
  failure = fields.err
elseif expects_new or call('EXISTS', key) == 1 then
  failure = BAD_STATE
end
