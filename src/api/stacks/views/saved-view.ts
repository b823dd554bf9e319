import { type Static, Type } from 'typebox';
import { text } from '../../access/procedures/inputs.ts';
import { StatusFilter } from '../stack-filter.ts';

const closed = { additionalProperties: false };
const literals = <const T extends readonly string[]>(...values: T) =>
  Type.Union(values.map((value) => Type.Literal(value as T[number])));
/** As long as the texts of the pages themselves may be. */
const Text = Type.Optional(text(400));

const StacksView = Type.Object({
  page: Type.Literal('stacks'),
  search: Type.Object(
    { text: Text, project: Text, tag: Text, status: Type.Optional(StatusFilter), columns: Text },
    closed,
  ),
});
const ActivityView = Type.Object({
  page: Type.Literal('activity'),
  search: Type.Object(
    {
      kind: Type.Optional(literals('updates', 'previews', 'approvals', 'freezes', 'stacks')),
      who: Text,
      stack: Text,
    },
    closed,
  ),
});
const CiView = Type.Object({
  page: Type.Literal('ci'),
  search: Type.Object(
    {
      view: Type.Optional(literals('runs', 'refusals', 'drift', 'delivery')),
      days: Type.Optional(literals('30', '90')),
      reason: Text,
      project: Text,
      sort: Type.Optional(literals('failures', 'queue', 'runs')),
    },
    closed,
  ),
});

/** A page, and the parameters of its URL. */
export const ViewedPage = Type.Union([StacksView, ActivityView, CiView]);
export type ViewedPage = Static<typeof ViewedPage>;

const maxNameChars = 60;

export const ViewName = Type.String({ minLength: 1, maxLength: maxNameChars, pattern: '^[^\\u0000]*$' });
