import { Type } from 'typebox';

/** Of calls that change something only if it is still as the caller has read it. */
export const IfMatchHeaders = Type.Object({
  'if-match': Type.Optional(
    Type.String({
      description:
        'The ETag of what you have read. If somebody has changed it since, nothing is changed, and the response is 412. Without it, whatever is there is changed',
    }),
  ),
});
