import { Type } from 'typebox';

/** For calls that change an item only if it has not changed since the caller read it. */
export const IfMatchHeaders = Type.Object({
  'if-match': Type.Optional(
    Type.String({
      description:
        'The ETag that you have read. If the item has changed since, nothing is changed, and the response is 412. Without it, any version is changed',
    }),
  ),
});
