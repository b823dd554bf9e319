import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { anyCodePoint } from '../../../../testkit/any-code-point.ts';
import { JsonSyntaxError } from '../../platform/json/json-scanner.ts';
import { type DeltaEdit, InvalidDeltaError, parseDelta, spliceDelta } from './delta.ts';

const hash = 'ab'.repeat(32);

function edit(start: number, end: number, newText: string): DeltaEdit {
  return { start, end, newText: Buffer.from(newText) };
}

function textEdit(start: unknown, end: unknown, newText: unknown) {
  const point = (offset: unknown) => ({ line: 1, column: 1, offset });
  return { Span: { uri: '', start: point(start), end: point(end) }, NewText: newText };
}

function bodyOf(deploymentDelta: unknown, rest: object = {}): Buffer {
  return Buffer.from(JSON.stringify({ version: 3, checkpointHash: hash, sequenceNumber: 2, deploymentDelta, ...rest }));
}

async function* chunksOf(text: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  let from = 0;
  for (const size of sizes) {
    yield text.subarray(from, from + size);
    from += size;
  }
  yield text.subarray(from);
}

async function splice(base: Buffer, edits: readonly DeltaEdit[], sizes: readonly number[] = []): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of spliceDelta(chunksOf(base, sizes), edits)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function applyNaively(base: Buffer, edits: readonly DeltaEdit[]): Buffer {
  const parts = edits.flatMap(({ start, newText }, at) => [base.subarray(edits[at - 1]?.end ?? 0, start), newText]);
  return Buffer.concat([...parts, base.subarray(edits.at(-1)?.end ?? 0)]);
}

const text = fc.string({ unit: anyCodePoint }).map((value) => Buffer.from(value));
/** The edits are sorted and disjoint, and include insertions and adjacent edits. */
const baseAndEdits = text.chain((base) =>
  fc
    .array(fc.tuple(fc.tuple(fc.nat(base.length), fc.nat(base.length)), text))
    .map((cuts) => {
      const offsets = cuts.flatMap(([range]) => range).sort((a, b) => a - b);
      return cuts.map(([, newText], i) => ({ start: offsets[2 * i] ?? 0, end: offsets[2 * i + 1] ?? 0, newText }));
    })
    .map((edits) => ({ base, edits })),
);

describe('spliceDelta', () => {
  test('counts bytes of UTF-8, not characters', async () => {
    const spliced = await splice(Buffer.from('é日😀x'), [edit(2, 5, 'ab'), edit(9, 10, 'é')]);
    expect(spliced.toString()).toBe('éab😀é');
  });

  test('inserts at one offset in the order of the edits, before what is replaced there', async () => {
    const edits = [edit(0, 0, '<'), edit(1, 1, '1'), edit(1, 1, '2'), edit(1, 2, 'B'), edit(2, 3, ''), edit(3, 3, '>')];
    expect((await splice(Buffer.from('abc'), edits)).toString()).toBe('<a12B>');
  });

  test('describes an invalid offset', async () => {
    const base = Buffer.from('abc');
    await expect(splice(base, [edit(-1, 0, '')])).rejects.toThrow('negative');
    await expect(splice(base, [edit(1, 9, '')])).rejects.toThrow('up to byte 9, but it has only 3 bytes');
  });

  test.each([
    ['replaces beyond the end', [edit(2, 4, '')]],
    ['inserts beyond the end', [edit(4, 4, '')]],
    ['starts beyond the end', [edit(0, 1, 'x'), edit(7, 9, '')]],
    ['is out of order', [edit(2, 2, ''), edit(1, 1, '')]],
    ['overlaps', [edit(0, 2, ''), edit(1, 3, '')]],
    ['ends before it starts', [edit(2, 1, '')]],
    ['is negative', [edit(-1, 1, '')]],
    ['is not an integer', [edit(0.5, 1, '')]],
  ])('rejects an edit that %s', async (_, edits) => {
    const base = Buffer.from('abc');
    await expect(splice(base, edits)).rejects.toThrow(InvalidDeltaError);
    await expect(splice(base, edits, [1, 1])).rejects.toThrow(InvalidDeltaError);
  });

  test('gives the same result as on the whole text, however the base is split', async () => {
    await fc.assert(
      fc.asyncProperty(baseAndEdits, fc.array(fc.nat(5)), async ({ base, edits }, sizes) => {
        const expected = applyNaively(base, edits).toString('hex');
        expect((await splice(base, edits)).toString('hex')).toBe(expected);
        expect((await splice(base, edits, sizes)).toString('hex')).toBe(expected);
      }),
      { numRuns: 500 },
    );
  });

  test('yields large chunks as the base is read, without copies', async () => {
    let chunksRead = 0;
    const chunk = Buffer.alloc(200_000, 'a');
    async function* base() {
      for (; chunksRead < 5; chunksRead++) yield chunk;
    }
    const chunks = spliceDelta(base(), [edit(1, 2, 'X')]);
    expect(String((await chunks.next()).value)).toBe('aX');
    const { value } = await chunks.next();
    expect(value?.length).toBe(chunk.length - 2);
    expect(value?.buffer).toBe(chunk.buffer);
    expect(chunksRead).toBe(0);
    await chunks.return(undefined);
  });

  test('joins small chunks, and keeps their order with large ones', async () => {
    const base = Buffer.from(Array.from({ length: 600_000 }, (_, at) => at % 251));
    const edits = Array.from({ length: 20_000 }, (_, at) => edit(at * 2, at * 2 + 1, String(at % 10)));
    edits.push(edit(300_000, 300_001, 'Y'.repeat(100_000)), edit(599_999, 600_000, 'Z'));
    const chunks: Buffer[] = [];
    async function* whole() {
      yield base;
    }
    for await (const chunk of spliceDelta(whole(), edits)) chunks.push(chunk);
    expect(Buffer.concat(chunks).equals(applyNaively(base, edits))).toBe(true);
    expect(chunks.length).toBeLessThan(10);
  });
});

describe('parseDelta', () => {
  test('parses edits in any JSON formatting', async () => {
    await fc.assert(
      fc.asyncProperty(baseAndEdits, fc.nat(), fc.boolean(), async ({ edits }, sequenceNumber, isIndented) => {
        const body = {
          version: 4,
          checkpointHash: hash,
          sequenceNumber,
          deploymentDelta: edits.map(({ start, end, newText }) => textEdit(start, end, newText.toString())),
        };
        const delta = await parseDelta(Buffer.from(JSON.stringify(body, null, isIndented ? 2 : 0)));
        expect(delta).toEqual({ deploymentVersion: 4, checkpointHash: hash, sequenceNumber, edits });
      }),
    );
  });

  test('accepts names in any case and an upper-case hash', async () => {
    const body = Buffer.from(
      `{"version":3,"checkpointHash":"${hash.toUpperCase()}","sequenceNumber":1,` +
        '"deploymentDelta":[{"newtext":"a","span":{"Start":{"Offset":1},"END":{"OFFSET":2}}}]}',
    );
    expect(await parseDelta(body)).toMatchObject({ checkpointHash: hash, edits: [edit(1, 2, 'a')] });
  });

  test('reads lone surrogates as U+FFFD', async () => {
    const body = bodyOf([textEdit(0, 0, '?')])
      .toString()
      .replace('?', '\\ud83d!\\u00e9');
    expect((await parseDelta(Buffer.from(body))).edits).toEqual([edit(0, 0, '\ufffd!é')]);
  });

  test('accepts an empty delta', async () => {
    expect((await parseDelta(bodyOf([]))).edits).toEqual([]);
  });

  test.each([
    ['a body that is not an object', Buffer.from('[]')],
    ['a hash that is too short', bodyOf([], { checkpointHash: 'ab' })],
    ['a hash that is not hexadecimal', bodyOf([], { checkpointHash: 'xy'.repeat(32) })],
    ['no hash', bodyOf([], { checkpointHash: undefined })],
    ['a version in quotes', bodyOf([], { version: '3' })],
    ['no version', bodyOf([], { version: undefined })],
    ['no sequence number', bodyOf([], { sequenceNumber: null })],
    ['a negative sequence number', bodyOf([], { sequenceNumber: -1 })],
    ['a sequence number above the column', bodyOf([], { sequenceNumber: 2 ** 31 })],
    ['no edits', bodyOf(undefined)],
    ['edits that are null', bodyOf(null)],
    ['an edit that is not an object', bodyOf(['x'])],
    ['an edit without text', bodyOf([textEdit(0, 0, undefined)])],
    ['an edit without text after one with text', bodyOf([textEdit(0, 0, 'a'), textEdit(0, 0, undefined)])],
    ['a text that is not a string', bodyOf([textEdit(0, 0, 5)])],
    ['an edit without start', bodyOf([textEdit(undefined, 0, '')])],
    ['an edit without end', bodyOf([textEdit(0, undefined, '')])],
    ['a negative offset', bodyOf([textEdit(-1, 0, '')])],
    ['a fractional offset', bodyOf([textEdit(0, 1.5, '')])],
    ['an offset that is not a safe integer', bodyOf([textEdit(0, 2 ** 53, '')])],
    ['an offset in quotes', bodyOf([textEdit('0', 0, '')])],
    ['an edit that ends before it starts', bodyOf([textEdit(2, 1, '')])],
    ['overlapping edits', bodyOf([textEdit(0, 2, ''), textEdit(1, 3, '')])],
    ['edits out of order', bodyOf([textEdit(3, 3, ''), textEdit(1, 1, '')])],
  ])('rejects %s', async (_, body) => {
    await expect(parseDelta(body)).rejects.toThrow(InvalidDeltaError);
  });

  test('throws a different error for invalid JSON', async () => {
    await expect(parseDelta(Buffer.from('{"version":'))).rejects.toThrow(JsonSyntaxError);
  });
});
