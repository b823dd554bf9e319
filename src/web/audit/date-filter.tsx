import { useDebouncedText } from '../platform/app/debounced-text.ts';
import { TextField } from '../platform/ui/field.tsx';

/** Typing a date takes longer than a word: each of its parts is one. */
const pauseMs = 600;

/** A date that filters a list once the user pauses. `value`: the date in the URL. */
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

/** What a date field means: while a year is typed, it has the years 2, 20 and 202, and what was meant before still is. */
export function readDate(text: string, before: string): string {
  return text === '' || /^[1-9]\d{3}-/.test(text) ? text : before;
}
