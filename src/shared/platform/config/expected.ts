import type { TSchema } from 'typebox';

/** `form` describes `pattern` in words. */
interface SettingSchema {
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly anyOf?: readonly { readonly const?: unknown }[];
  readonly form?: string;
}

/** Describes the valid values for users who entered an invalid one, e.g. "true or false". */
export function expected(schema: TSchema): string {
  const { type, anyOf, form, minimum, maximum, minLength, maxLength } = schema as SettingSchema;
  if (form !== undefined) return form;
  if (anyOf !== undefined) return `one of ${anyOf.map((choice) => String(choice.const)).join(', ')}`;
  if (type === 'boolean') return 'true or false';
  if (type === 'integer') return `a whole number from ${minimum} to ${maximum}`;
  return `a text of ${minLength ?? 0} to ${maxLength ?? 'any number of'} characters`;
}
