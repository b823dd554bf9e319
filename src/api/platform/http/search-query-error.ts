import { InvalidRequestError } from '../../../shared/platform/errors/errors.ts';

/** `start` and `end`: the position of the error, in characters from 0. */
export class SearchQueryError extends InvalidRequestError {
  override readonly name = 'SearchQueryError';
  override readonly code = 'invalid-query';
  readonly start: number;
  readonly end: number;

  constructor(why: string, start: number, end: number) {
    super(`The query is invalid at character ${start + 1}: ${why}`);
    this.start = start;
    this.end = end;
  }
}
