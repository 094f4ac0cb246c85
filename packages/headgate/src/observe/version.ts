/** The version of this package, for metrics and reports. A test compares it with package.json. */
export const VERSION = '0.1.0'
