import { TextField } from '../ui/field.tsx';
import { useDebouncedText } from './debounced-text.ts';
import { LoginField } from './suggest-fields.tsx';

/** Applied once the user pauses. `value` is the text in the URL. */
export function TextFilter({
  label,
  onChange,
  organization,
  placeholder,
  value = '',
}: {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
  readonly placeholder?: string;
  /** Suggests members of this organization. */
  readonly organization?: string;
}) {
  const [draft, setDraft] = useDebouncedText(value, (text) => onChange(text || undefined));
  const field = { label, placeholder, type: 'search', value: draft, maxLength: 200 } as const;
  return organization === undefined ? (
    <TextField {...field} onChange={({ target }) => setDraft(target.value)} />
  ) : (
    <LoginField {...field} organization={organization} onChange={setDraft} />
  );
}
