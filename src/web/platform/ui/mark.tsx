/** The name mark: three roots that grip a short base line. */
export function Mark({ size = 22 }: { readonly size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      strokeLinecap="round"
      aria-hidden="true"
    >
      <path d="M12 3v17.5M12 8.5c0 6-7 4.5-7 12M12 8.5c0 6 7 4.5 7 12M2.5 20.5h19" />
    </svg>
  );
}
