import { useDebouncedText } from '../platform/app/debounced-text.ts';
import { TextField } from '../platform/ui/field.tsx';

/** Longer than for text, because users pause between the parts of a date. */
const pauseMs = 600;

/** `value` is the date in the URL. */
export function DateFilter({
  label,
  onChange,
  value = '',
}: {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}) {
  const [draft, setDraft] = useDebouncedText(
    value,
    (text) => onChange(text || undefined),
    pauseMs,
    (text) => readDate(text, value),
  );
  return <TextField type="date" label={label} value={draft} onChange={({ target }) => setDraft(target.value)} />;
}

/** While a year is typed, the field contains the years 2, 20 and 202: the previous value then still applies. */
export function readDate(text: string, before: string): string {
  return text === '' || /^[1-9]\d{3}-/.test(text) ? text : before;
}
