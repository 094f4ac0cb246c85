/** Every answer of the decision API carries it, so that a client can tell the API from whatever else has the port. */
export const API_HEADER = 'Headgate-Api'
export const API_VERSION = 'v1'
