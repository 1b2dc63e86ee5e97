// Schemas to begin with.

export const samples = {
  "Support ticket": {
    message: "My invoice from March is wrong, you charged me twice. I am quite annoyed!",
    schema: {
      type: "object", additionalProperties: false, required: ["team", "urgent", "mood", "summary"],
      properties: {
        team: { type: "string", enum: ["billing", "delivery", "technology", "other"] },
        urgent: { type: "boolean" },
        mood: { type: "integer", minimum: 1, maximum: 5, description: "1 is angry, 5 is happy" },
        summary: { type: "string", maxLength: 120 },
      },
    },
  },
  Person: {
    message: "Invent a person for a short story.",
    schema: {
      type: "object", additionalProperties: false, required: ["name", "age", "occupation", "hobbies"],
      properties: {
        name: { type: "string", maxLength: 40 }, age: { type: "integer", minimum: 10, maximum: 99 },
        occupation: { type: "string", maxLength: 40 },
          hobbies: { type: "array", items: { type: "string", maxLength: 30 }, minItems: 1, maxItems: 3 },
      },
    },
  },
  Event: {
    message: "On 14 May 2026 at 18:30 Ada Lovelace speaks about engines in the Blue Room; a seat costs 7.50 euros.",
    schema: {
      type: "object", additionalProperties: false, required: ["title", "kind", "day", "time", "price"],
      properties: {
        title: { type: "string", maxLength: 60 }, kind: { enum: ["concert", "meeting", "party", "talk", "other"] },
        day: { type: "string", format: "date" }, time: { type: "string", pattern: "^[0-2][0-9]:[0-5][0-9]$" },
        price: { anyOf: [{ type: "number", minimum: 0 }, { type: "null" }] },
      },
    },
  },
  "One of several": {
    message: "Is this review good or bad? “The battery lasts a week, I love it.”",
    schema: { type: "string", enum: ["good", "bad", "neither"] },
  },
};
