import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { AnyObject } from '../platform/protocol/core.ts';

/** apitype.EngineEventBatch. Each event also has one payload, named after its type. */
export const EventBatchRequest = component(
  'EventBatchRequest',
  Type.Object({
    events: Type.Array(
      Type.Object(
        { sequence: Type.Integer({ minimum: 0 }), timestamp: Type.Optional(Type.Integer()) },
        { additionalProperties: true },
      ),
    ),
  }),
);

/** The token is null at the end. */
export const EventsResponse = component(
  'EventsResponse',
  Type.Object({
    events: Type.Array(AnyObject),
    continuationToken: Type.Union([Type.String(), Type.Null()]),
  }),
);

export const EventsQuery = Type.Object({
  continuationToken: Type.Optional(Type.String()),
  urn: Type.Optional(Type.String({ description: 'Only events about this resource' })),
  type: Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.String())], {
      description: 'Only events with this payload, such as `resourcePreEvent`; may be repeated',
    }),
  ),
  order: Type.Optional(
    Type.Union([Type.Literal('asc'), Type.Literal('desc')], {
      description: '`desc`: newest first. The continuation token then leads to older events',
    }),
  ),
});
