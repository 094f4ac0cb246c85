/**
 * The answers of the admin port, as the server describes them: types alone, nothing of the server comes into the page. Names
 * in them come from outside and are shown as text only.
 */
export type { Override, QuotaUsage } from 'headgate'
export type { OverrideEffect } from 'headgate/internal'
export type { ShownChanges } from '../../server/src/admin/changes.js'
export type { Caller } from '../../server/src/admin/endpoint.js'
export type { Alert } from '../../server/src/observe/alert-rules.js'
export type { ShownDenial } from '../../server/src/observe/denial-log.js'
export type { ShownDeniedCaller } from '../../server/src/observe/denied-callers.js'
export type { FoundSubject } from '../../server/src/observe/find-subjects.js'
export type { ShownFleet } from '../../server/src/observe/fleet.js'
export type { Point } from '../../server/src/observe/history.js'
export type { ShownPolicy } from '../../server/src/observe/policy-endpoints.js'
export type { Row } from '../../server/src/observe/second.js'
export type { Snapshot, WouldBe } from '../../server/src/observe/snapshot.js'
export type { ShownSubject } from '../../server/src/observe/subject-endpoints.js'
export type { PolicyReplay, TriedPolicy } from '../../server/src/observe/try-policy.js'
