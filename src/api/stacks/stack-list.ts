import type { StackListRow } from '../../shared/stacks/stack-repository.ts';

/**
 * A page of a list of stacks as JSON, read piece by piece: `pieces` yields rows and returns the token of the next page, or null on
 * the last. An empty token would send the CLI round for ever, so the last page has none at all.
 */
export async function* stackListJson(
  pieces: AsyncGenerator<readonly StackListRow[], string | null>,
  show: (row: StackListRow) => object,
): AsyncGenerator<string> {
  let isFirst = true;
  yield '{"stacks":[';
  for (;;) {
    const piece = await pieces.next();
    if (piece.done) {
      yield piece.value === null ? ']}' : `],"continuationToken":${JSON.stringify(piece.value)}}`;
      return;
    }
    const rows = piece.value.map((row) => JSON.stringify(show(row))).join(',');
    yield isFirst ? rows : `,${rows}`;
    isFirst = false;
  }
}
