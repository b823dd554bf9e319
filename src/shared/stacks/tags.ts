import { InvalidRequestError } from '../platform/errors/errors.ts';

/** Name to value. Objects without a prototype, so that `__proto__` is an ordinary name. */
export type Tags = Record<string, string>;

const namePattern = /^[a-zA-Z0-9_.:-]{1,40}$/;
const maxValueBytes = 256;
export const maxTags = 200;

/** As Pulumi does (pkg/util/validation/stack.go). Throws InvalidRequestError. */
export function parseTags(value: unknown): Tags {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidRequestError('Tags must be an object of strings');
  }
  const tags: Tags = Object.create(null) as Tags;
  const entries = Object.entries(value);
  if (entries.length > maxTags)
    throw new InvalidRequestError(`A stack can have at most ${maxTags} tags, not ${entries.length}`);
  for (const [name, text] of entries) {
    if (!namePattern.test(name)) {
      throw new InvalidRequestError(
        `Tag name ${JSON.stringify(name.slice(0, 60))} is not valid: 1 to 40 letters, digits, hyphens, underscores, periods and colons`,
      );
    }
    if (typeof text !== 'string') throw new InvalidRequestError(`The value of tag "${name}" must be a string`);
    const bytes = Buffer.byteLength(text);
    if (bytes > maxValueBytes)
      throw new InvalidRequestError(
        `The value of tag "${name}" has ${bytes} bytes; at most ${maxValueBytes} are allowed`,
      );
    if (!text.isWellFormed() || text.includes('\0'))
      throw new InvalidRequestError(
        `The value of tag "${name}" is not valid text: it contains a NUL or half a surrogate pair`,
      );
    tags[name] = text;
  }
  return tags;
}

export function readTags(stored: string): Tags {
  return Object.assign(Object.create(null), JSON.parse(stored)) as Tags;
}

/** Updates an existing tag for the project's name. */
export function tagsIn(project: string, tags: Tags): Tags {
  return tags['pulumi:project'] === undefined ? tags : { ...tags, 'pulumi:project': project };
}

/**
 * The body is a bare map, as in the CLI's dialect, or the contract's `{"tags": {…}}`. The latter is recognized by `tags` as its only
 * member, with an object as value.
 */
export function tagsOfRequest(body: unknown): Tags {
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) {
    const members = Object.entries(body);
    const [name, value] = members[0] ?? [];
    if (members.length === 1 && name === 'tags' && typeof value === 'object') return parseTags(value);
  }
  return parseTags(body);
}
