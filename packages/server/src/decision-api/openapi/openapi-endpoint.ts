import { type Endpoint, reads } from '../../admin/endpoint.js'
import { jsonAnswer } from '../../http/problem.js'
import { OPENAPI_DOCUMENT } from './openapi-document.js'

/** The document by which clients are generated, and people look things up. */
export const openApiEndpoint: Endpoint = {
  path: '/v1/openapi.json',
  methods: { GET: reads(() => jsonAnswer(200, OPENAPI_DOCUMENT)) },
}
