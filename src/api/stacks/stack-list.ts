import type { StackListRow } from '../../shared/stacks/stack-list-repository.ts';

/**
 * A page of the stack list as JSON. `chunks` yields rows and returns the token of the next page, or null on the last page. The
 * last page has no token at all, because an empty one would make the CLI loop forever.
 */
export async function* stackListJson(
  chunks: AsyncGenerator<readonly StackListRow[], string | null>,
  show: (row: StackListRow) => object,
): AsyncGenerator<string> {
  let isFirst = true;
  yield '{"stacks":[';
  for (;;) {
    const chunk = await chunks.next();
    if (chunk.done) {
      yield chunk.value === null ? ']}' : `],"continuationToken":${JSON.stringify(chunk.value)}}`;
      return;
    }
    const rows = chunk.value.map((row) => JSON.stringify(show(row))).join(',');
    yield isFirst ? rows : `,${rows}`;
    isFirst = false;
  }
}
