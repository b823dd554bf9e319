import { type Static, type TSchema, Type } from 'typebox';
import { Nullable } from '../../shared/platform/schema/standard-schema.ts';

export const Text = Type.String();
export const Count = Type.Integer();
export const Flag = Type.Boolean();
export const Texts = Type.Array(Text);
export const TextOrNull = Nullable(Text);
export const CountOrNull = Nullable(Count);
/** A Date, which becomes ISO 8601 text. */
export const Time = Type.Unsafe<Date>({ type: 'string', format: 'date-time' });
export const TimeOrNull = Nullable(Time);

export type Printed<S extends TSchema> = DeepReadonly<Static<S>>;

type DeepReadonly<T> = T extends Date
  ? T
  : T extends readonly (infer Item)[]
    ? readonly DeepReadonly<Item>[]
    : T extends object
      ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
      : T;
