import { useEffect, useState } from 'react';
import { TextField } from '../ui/field.tsx';

const typingMs = 250;

/** A field that narrows a list once somebody pauses. `value`: what the URL has. */
export function TextFilter({
  label,
  onChange,
  placeholder,
  value = '',
}: {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
  readonly placeholder?: string;
}) {
  const [draft, setDraft] = useState(value);
  // The URL changed by other means, such as "back".
  const [seen, setSeen] = useState(value);
  if (value !== seen) {
    setSeen(value);
    if (value !== draft.trim()) setDraft(value);
  }
  useEffect(() => {
    if (draft.trim() === value) return undefined;
    const timer = setTimeout(() => onChange(draft.trim() || undefined), typingMs);
    return () => clearTimeout(timer);
  });
  return (
    <TextField
      type="search"
      label={label}
      value={draft}
      maxLength={200}
      placeholder={placeholder}
      onChange={({ target }) => setDraft(target.value)}
    />
  );
}
